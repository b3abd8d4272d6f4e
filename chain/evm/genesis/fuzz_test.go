package genesis

import "testing"

// FuzzParse looks for files that make Parse panic, or that it accepts although
// their block cannot be built.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"config": {"chainId": 1}, "gasLimit": "1", "difficulty": 1, "alloc": {}, "baseFeePerGas": null}`))
	f.Add([]byte(`{"config": {"yolov2Block": [[{}]]}, "alloc": [`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if g, err := Parse(data); err == nil {
			g.ToBlock()
		}
	})
}
