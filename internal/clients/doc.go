// Package clients tests the service with common client libraries: ethers and viem (JavaScript) and
// web3.py (Python), over HTTP and WebSocket; and starknet.js and starknet.py for Starknet networks.
// It contains only tests. install.sh installs the libraries into a folder, which the environment
// variable ASHLAR_CLIENTS names.
package clients
