"""A model from a GGUF file on this machine: llama.cpp's server in a child process, experimental (`punie[local]`)."""
