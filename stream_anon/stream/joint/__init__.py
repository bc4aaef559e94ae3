"""The parts of CAIL: early clusters around new rows, pools of what waits, and clearing a pool as a whole."""
