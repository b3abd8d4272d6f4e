// Package cluster tests the service on a Cassandra cluster of three nodes: processes with
// the roles writer, standby and reader. It contains only tests. Those on the three nodes do
// not run in parallel: nodes take long to agree on a schema that several processes change at
// once. TestWindow, whose stores are on a node of its own, runs beside TestDifferential, which
// does not depend on time either.
package cluster
