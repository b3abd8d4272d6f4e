package api

import (
	"encoding/json"
	"strings"

	"ashlar/jsonrpc"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

const reverted = "execution reverted"

// translateRevert returns the error of the specification for a REVERT, nil if an error is
// another one.
func translateRevert(e *upstream.NodeError) *jsonrpc.Error {
	if !upstream.IsRevert(e) {
		return nil
	}
	out := &jsonrpc.Error{Code: jsonrpc.CodeReverted, Message: reverted}
	payload, ok := payloadOf(e)
	if !ok {
		if reason, found := strings.CutPrefix(e.Message, reverted+": "); found {
			out.Message = reverted + ": " + reason[:min(len(reason), maxMessage)]
		}
		return out
	}
	out.Data = payload.String()
	if reason, err := abi.UnpackRevert(payload); err == nil {
		out.Message = reverted + ": " + reason
	}
	return out
}

// payloadOf finds the payload of a REVERT in the data of an error: a hexadecimal text, one
// after "Reverted ", or a member `data` of an object.
func payloadOf(e *upstream.NodeError) (hexutil.Bytes, bool) {
	data := e.Data
	var nested struct {
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(data, &nested) == nil && nested.Data != nil {
		data = nested.Data
	}
	var text string
	if json.Unmarshal(data, &text) != nil {
		return nil, false
	}
	if i := strings.Index(text, "0x"); i >= 0 {
		text = text[i:]
	}
	payload, err := hexutil.Decode(text)
	return payload, err == nil
}
