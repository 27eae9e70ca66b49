"""Summary of a Haystack (Laban, Fabbri, Xiong and Wu, 2024): about a hundred documents, a query, and a summary with sources."""
