"""gguf/PATH: chat models in this process, by llama.cpp."""
