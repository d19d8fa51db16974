"""Transactions: half messages, their outcome, and the questions that producers are asked.
`engine.Engine` has its verbs (`transacting.py`); it sends through the window as senders do.
"""
