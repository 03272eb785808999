"""Pure numpy, scipy and scikit-learn: no Django, no database."""
