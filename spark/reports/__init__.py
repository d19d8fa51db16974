"""Reports: small aggregated frames by name, each a pure function of the staged frames
(`staging.py`).
"""
