package verify

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ashlar/kv"
)

// TestStepVersions: the versions are the same for ascending and descending rows.
func TestStepVersions(t *testing.T) {
	row := func(partition string, sort uint64, value string) kv.Row {
		return kv.Row{Partition: []byte(partition), Sort: sort, Value: []byte(value)}
	}
	rows := []kv.Row{row("a", 1, "x"), row("a", 3, "x"), row("a", 9, ""), row("b", 2, ""), row("b", 4, ""), row("c", 5, "y"), row("d", 6, "y"), row("d", 7, "z")}
	const never = math.MaxUint64
	want := map[string]bool{ // whether the version repeats the previous one
		fmt.Sprint("a", 1, 3, "x"): false, fmt.Sprint("a", 3, 9, "x"): true, fmt.Sprint("a", 9, uint64(never), ""): false,
		fmt.Sprint("b", 2, 4, ""): true, fmt.Sprint("b", 4, uint64(never), ""): true,
		fmt.Sprint("c", 5, uint64(never), "y"): false, fmt.Sprint("d", 6, 7, "y"): false, fmt.Sprint("d", 7, uint64(never), "z"): false,
	}
	for range 2 {
		count := 0
		err := stepVersions(func(yield func(kv.Row, error) bool) {
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}, func(v version) error {
			key := fmt.Sprint(string(v.partition), v.from, v.until, string(v.value))
			if repeats, ok := want[key]; !ok || repeats != v.repeats {
				t.Errorf("version %s, repeats: %v", key, v.repeats)
			}
			count++
			return nil
		})
		if err != nil || count != len(want) {
			t.Errorf("%d versions, %v, want %d", count, err, len(want))
		}
		slices.Reverse(rows)
	}
}
