"""Promises the inside asks of the outside, one noun a file."""
