"""The parts that several batch algorithms share: classes, cuts, counting and the compiled form of requirements."""
