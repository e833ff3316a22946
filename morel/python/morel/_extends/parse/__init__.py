"""Names of MindSpore's parser that scripts use."""
