//go:build !unix

package cassandratest

import "errors"

// Pause fails: the system cannot stop a process without ending it.
func (c *Cluster) Pause(int) error { return errors.ErrUnsupported }

// Resume fails, as [Cluster.Pause] does.
func (c *Cluster) Resume(int) error { return errors.ErrUnsupported }
