package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

func TestBlobs(t *testing.T) {
	some := []common.Hash{{1}, {1, 2}}
	for _, test := range []struct {
		name, version string
		now           int64
		params        []any
		want          string
	}{
		{"all are missing", "V1", osaka - 1, []any{some}, `"result":[null,null]`},
		{"none is asked for", "V1", osaka - 1, []any{[]common.Hash{}}, `"result":[]`},
		{"Osaka", "V1", osaka, []any{some}, `-38005,"message":"Unsupported fork"`},
		{"all or none", "V2", osaka, []any{some}, `"result":null`},
		{"some", "V3", amsterdam, []any{some}, `"result":[null,null]`},
		{"the most", "V3", osaka, []any{make([]common.Hash, maxBlobs)}, `null]`},
		{"too many", "V2", osaka, []any{make([]common.Hash, maxBlobs+1)}, `-38004,"message":"Too large request","data":{"err":"129 blobs (want at most 128)"}`},
		{"no hash", "V2", osaka, []any{[]string{"0x01"}}, `-32602`},
		{"no argument", "V3", osaka, nil, `-32602`},
	} {
		t.Run(test.version+", "+test.name, func(t *testing.T) {
			methods := New(Config{Chain: new(listener), Rules: rules(), Now: func() time.Time { return time.Unix(test.now, 0) }}).Methods()
			if got := ask(t, methods, "engine_getBlobs"+test.version, test.params...); !strings.Contains(got, test.want) {
				t.Errorf("got %s, expected %s", got, test.want)
			}
		})
	}
}
