package engine

import (
	"context"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// maxBlobs is how many blobs a call may ask for. The specification demands at least 128.
const maxBlobs = 128

// blobs answers engine_getBlobs of a version. A consensus client asks for the blobs of a new
// block, which the execution client may have from its pool, before it waits for its own peers
// to send them. No blobs are kept here, so all are missing: null each, or V2's null for the
// whole, which gives all blobs or none. Without an answer some clients log an error for every
// block with blobs.
func (a *API) blobs(version string) jsonrpc.Handler {
	return func(_ context.Context, params, out []byte) ([]byte, error) {
		wanted, err := hashesAlone(params)
		if err != nil {
			return out, err
		}
		if version == "V1" && forkAt(a.config.Rules, uint64(a.config.Now().Unix())).osaka {
			return out, unsupportedFork("blobs with the proofs of Osaka: expected engine_getBlobsV2 or V3")
		}
		if len(wanted) > maxBlobs {
			return out, tooLarge(uint64(len(wanted)), "blobs", maxBlobs)
		}
		if version == "V2" {
			return append(out, "null"...), nil
		}
		missing := func(out []byte, _ common.Hash) []byte { return append(out, "null"...) }
		return jsonrpc.AppendArray(out, wanted, missing), nil
	}
}
