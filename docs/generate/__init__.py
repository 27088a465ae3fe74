"""Makes the reference pages that restate the code: ``python -m docs.generate``; a test keeps them current."""
