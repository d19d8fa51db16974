"""Queues of MNS: names, attributes, lists, and the account. Called by
`facade.dialects.mns.actions`.
"""
