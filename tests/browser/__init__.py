"""A headless Chromium for tests that look at a page: `fetch` has it, `chromium` drives it. No
system package, no root.
"""
