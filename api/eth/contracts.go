package eth

import (
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// Contracts tells which addresses a call of a method is about, without making the
// call. restricted is false for methods that are about none; a call of a restricted
// method about no address that can be told is about all. Where an object names a member
// twice, both count, whichever the method takes.
func Contracts(method string, params []byte) (about []common.Address, restricted bool) {
	switch method {
	case "rollup_getEvents":
		return contractsOfEvents(params), true
	case "eth_subscribe":
		return contractsSubscribed(params)
	}
	read := contractReader(method)
	if read == nil {
		return nil, false
	}
	elements, ok := jsonrpc.Array(params)
	if !ok || !elements.Next() {
		return nil, true
	}
	return read(elements.Value()), true
}

// contractsSubscribed tells the contracts of which a subscription wants logs; other
// kinds of subscriptions are about none.
func contractsSubscribed(params []byte) (about []common.Address, restricted bool) {
	if name, err := subscriptionName(params); err != nil || name != "logs" {
		return nil, false
	}
	elements, _ := jsonrpc.Array(params)
	elements.Next() // the name
	if !elements.Next() {
		return nil, true
	}
	return contractsOf(elements.Value(), "address"), true
}

// contractReader returns what finds the addresses in a method's first parameter.
func contractReader(method string) func(raw []byte) []common.Address {
	switch method {
	case "eth_getBalance", "eth_getCode", "eth_getStorageAt", "eth_getTransactionCount", "eth_getProof":
		return contractIn
	case "eth_getStorageValues":
		return contractsNamed
	case "eth_call", "eth_estimateGas", "eth_createAccessList":
		return func(raw []byte) []common.Address { return contractsOf(raw, "to") }
	case "eth_getLogs", "eth_newFilter":
		return func(raw []byte) []common.Address { return contractsOf(raw, "address") }
	}
	return nil
}

// contractsOfEvents reads the addresses of the filters that params hold, by name or
// by position; none where one has none.
func contractsOfEvents(params []byte) (found []common.Address) {
	filters, isArray := jsonrpc.Array(params)
	if !isArray {
		filters, _ = jsonrpc.Object(params)
	}
	for filters.Next() {
		if !isArray && string(filters.Name()) != "filter" {
			continue
		}
		more := contractsOf(filters.Value(), "address")
		if len(more) == 0 {
			return nil
		}
		found = append(found, more...)
	}
	return found
}

// contractIn reads an address or an array of them; none where one is wrong.
func contractIn(raw []byte) []common.Address {
	found, err := parseFilterAddresses(raw)
	if err != nil {
		return nil
	}
	return found
}

// contractsNamed reads the names of an object's members, as eth_getStorageValues has them.
func contractsNamed(raw []byte) (found []common.Address) {
	members, _ := jsonrpc.Object(raw)
	for members.Next() {
		address, err := parseAddressText(members.Name())
		if err != nil {
			return nil
		}
		found = append(found, address)
	}
	return found
}

// contractsOf reads a member of an object.
func contractsOf(raw []byte, name string) (found []common.Address) {
	members, _ := jsonrpc.Object(raw)
	for members.Next() {
		if string(members.Name()) != name {
			continue
		}
		more := contractIn(members.Value())
		if len(more) == 0 {
			return nil
		}
		found = append(found, more...)
	}
	return found
}
