// Package cluster tests the service on a Cassandra cluster of three nodes: processes with
// the roles writer, standby and reader. It contains only tests.
package cluster
