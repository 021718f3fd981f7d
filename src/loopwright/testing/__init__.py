"""What `demo` and users' own tests need: a scripted agent, a sample repository, a model server, a conformance suite.

Not here: the fakes that only our own tests need (`tests/fakes`).
"""
