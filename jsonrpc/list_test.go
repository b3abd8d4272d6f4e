package jsonrpc

import "testing"

// A list takes as many entries as fit into its room together with its end.
func TestListFits(t *testing.T) {
	const entry = `"ab"`
	for most := range 40 {
		list := NewList([]byte("["), Room{end: most})
		fitting, err := list, error(nil)
		for err == nil {
			fitting = list
			err = list.Add(append(list.Next(), entry...))
		}
		out, err := fitting.End(err)
		switch least := len("[" + entry + "]"); {
		case most < least:
			if err == nil {
				t.Errorf("room of %d bytes: %s, expected an error", most, out)
			}
		case err != nil:
			t.Errorf("room of %d bytes: %v", most, err)
		case len(out) > most || len(out)+len(","+entry) <= most:
			t.Errorf("room of %d bytes: %s has %d", most, out, len(out))
		}
	}
}
