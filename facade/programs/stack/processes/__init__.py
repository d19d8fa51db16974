"""Child processes and the programs they run, whatever these are.

The other rooms of `facade.programs.stack` and the commands use it.
"""
