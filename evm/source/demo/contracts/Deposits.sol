// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Stands at the network's deposit contract address and logs deposits in the form
/// that EIP-6110 reads. It keeps no tree of deposits: nobody here proves one.
contract Deposits {
    uint64 public count;

    event DepositEvent(bytes pubkey, bytes withdrawal_credentials, bytes amount, bytes signature, bytes index);

    function deposit(bytes calldata pubkey, bytes calldata credentials, bytes calldata signature) external payable {
        require(pubkey.length == 48, "Deposits: public key is not 48 bytes");
        require(credentials.length == 32, "Deposits: credentials are not 32 bytes");
        require(signature.length == 96, "Deposits: signature is not 96 bytes");
        require(msg.value >= 1 ether && msg.value % 1 gwei == 0, "Deposits: less than 1 ether, or parts of a gwei");
        emit DepositEvent(pubkey, credentials, littleEndian(uint64(msg.value / 1 gwei)), signature, littleEndian(count));
        count++;
    }

    function littleEndian(uint64 x) private pure returns (bytes memory out) {
        out = new bytes(8);
        for (uint256 i = 0; i < 8; i++) {
            out[i] = bytes1(uint8(x >> (8 * i)));
        }
    }
}
