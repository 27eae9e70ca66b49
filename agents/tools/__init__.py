"""Chat models that call tools during the conversation."""
