"""The Alibaba MNS dialect: XML over HTTP, translated to the engine's verbs."""
