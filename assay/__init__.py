"""assay: closed-form theory of deep networks, put to the test."""
