// Package verified tests networks whose answers come from other nodes and are proven, over
// geth. It contains only tests.
package verified
