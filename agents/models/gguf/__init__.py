"""Chat models from GGUF files, run in this process by llama.cpp."""
