"""The tutorial, followed word by word on machines that are new; for a nightly job."""
