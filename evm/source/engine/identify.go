package engine

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"ashlar/jsonrpc"
)

// The answers to validators. The message has the reason, too, because some clients log no more of an error.
const (
	notBuilt    = "Ashlar builds no blocks"
	notBuiltWhy = notBuilt + ": validators that propose blocks need an execution client that builds them"
)

// refused are the methods that fetch a built block.
func refused() []string {
	return []string{
		"engine_getPayloadV1", "engine_getPayloadV2", "engine_getPayloadV3",
		"engine_getPayloadV4", "engine_getPayloadV5", "engine_getPayloadV6",
	}
}

// refuseBuilding answers the refused methods: no payload ID is ever given out.
func refuseBuilding(context.Context, []byte, []byte) ([]byte, error) {
	return nil, fault(codeUnknownPayload, "Unknown payload: "+notBuilt, notBuiltWhy)
}

// exchangeCapabilities answers engine_exchangeCapabilities. The client's capabilities
// make no difference.
func (a *API) exchangeCapabilities(_ context.Context, params, out []byte) ([]byte, error) {
	var args [1][]byte
	if err := jsonrpc.Arguments(params, args[:], 1); err != nil {
		return out, err
	}
	if err := readArray(args[0], func(_ int, raw []byte) error { _, err := text(raw); return err }); err != nil {
		return out, invalidParams(err.Error())
	}
	return jsonrpc.AppendArray(out, a.capabilities(), jsonrpc.AppendString[string]), nil
}

// capabilities are the supported methods.
func (a *API) capabilities() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(a.Methods())) {
		if name != "engine_exchangeCapabilities" && !slices.Contains(refused(), name) {
			names = append(names, name)
		}
	}
	return names
}

// ClientVersion identifies a client program.
type ClientVersion struct {
	Code    string `json:"code"` // two letters
	Name    string `json:"name"`
	Version string `json:"version"`
	Commit  string `json:"commit"` // the first four bytes of it, in hexadecimal
}

// maxName is how many bytes of a client's name are kept.
const maxName = 64

// clientVersion answers engine_getClientVersionV1.
func (a *API) clientVersion(_ context.Context, params, out []byte) ([]byte, error) {
	var args [1][]byte
	if err := jsonrpc.Arguments(params, args[:], 1); err != nil {
		return out, err
	}
	var client ClientVersion
	if err := json.Unmarshal(args[0], &client); err != nil {
		return out, invalidParams("expected a client's version: " + err.Error())
	}
	name := strings.ToValidUTF8(client.Name+" "+client.Version, "")
	a.record(func(h *LastCalls) { h.Client = strings.ToValidUTF8(name[:min(len(name), maxName)], "") })
	answer, err := json.Marshal([]ClientVersion{a.config.Client})
	return append(out, answer...), err
}
