// Package clients tests the service with common client libraries: ethers, viem and web3.js (JavaScript) and
// web3.py (Python), over HTTP and WebSocket; starknet.js and starknet.py for Starknet networks; and with
// tools, such as Foundry's. It contains only tests. install.sh installs the libraries into a folder, which the environment
// variable ASHLAR_CLIENTS names.
package clients
