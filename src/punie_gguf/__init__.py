"""An engine plug-in: a model from a GGUF file on this machine, served by llama.cpp in a child process."""
