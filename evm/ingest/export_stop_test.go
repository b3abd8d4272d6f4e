package ingest

// StopTime is for how long blocks settle after a follower was stopped.
const StopTime = stopTime
