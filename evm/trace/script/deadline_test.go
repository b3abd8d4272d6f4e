package script

import (
	"testing"
	"time"
)

// TestDeadline: a trace that has ended is not overdue, nor is the one after it.
func TestDeadline(t *testing.T) {
	d := newDeadline()
	d.begin(time.Nanosecond)
	<-d.timer.C
	if err := d.end(); err != nil {
		t.Errorf("a trace ended before it was overdue: %v", err)
	}
	if d.pass() {
		t.Error("nothing is under way, but it is overdue")
	}
	d.begin(time.Hour)
	if d.pass() {
		t.Error("a trace is overdue because of the one before it")
	}
	if err := d.end(); err != nil {
		t.Error(err)
	}
	d.begin(time.Nanosecond)
	<-d.timer.C
	if !d.pass() {
		t.Error("a trace is not overdue after its deadline")
	}
	if err := d.end(); err != errOverdue {
		t.Errorf("%v, expected %v: the worker has already said so", err, errOverdue)
	}
}
