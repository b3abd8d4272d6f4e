// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// A non-fungible token (ERC-721) that anyone may mint. Ids count up from 1.
/// Its Transfer has the same first topic as the ERC-20's but four topics and no data.
contract Collectible {
    mapping(uint256 => address) private owners;
    mapping(address => uint256) private balances;
    mapping(uint256 => address) private approvals;
    mapping(address => mapping(address => bool)) public isApprovedForAll;
    uint256 public totalSupply;

    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);
    event Approval(address indexed owner, address indexed approved, uint256 indexed tokenId);
    event ApprovalForAll(address indexed owner, address indexed operator, bool approved);

    error NoSuchToken(uint256 tokenId);
    error NotAuthorized(address caller, uint256 tokenId);

    function name() external pure returns (string memory) {
        return "Ashlar Demo Blocks";
    }

    function symbol() external pure returns (string memory) {
        return "BLOCK";
    }

    function tokenURI(uint256 tokenId) external view returns (string memory) {
        ownerOf(tokenId);
        bytes memory digits = new bytes(78);
        uint256 at = digits.length;
        do {
            digits[--at] = bytes1(uint8(48 + (tokenId % 10)));
            tokenId /= 10;
        } while (tokenId != 0);
        bytes memory number = new bytes(digits.length - at);
        for (uint256 i = 0; i < number.length; i++) {
            number[i] = digits[at + i];
        }
        return string.concat("demo:block/", string(number));
    }

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0x80ac58cd || id == 0x5b5e139f;
    }

    function balanceOf(address owner) external view returns (uint256) {
        require(owner != address(0), "Collectible: balance of the zero address");
        return balances[owner];
    }

    function ownerOf(uint256 tokenId) public view returns (address owner) {
        owner = owners[tokenId];
        if (owner == address(0)) {
            revert NoSuchToken(tokenId);
        }
    }

    function getApproved(uint256 tokenId) external view returns (address) {
        ownerOf(tokenId);
        return approvals[tokenId];
    }

    function mint(address to) external returns (uint256 tokenId) {
        require(to != address(0), "Collectible: mint to the zero address");
        tokenId = ++totalSupply;
        owners[tokenId] = to;
        balances[to]++;
        emit Transfer(address(0), to, tokenId);
    }

    function approve(address approved, uint256 tokenId) external {
        address owner = ownerOf(tokenId);
        if (msg.sender != owner && !isApprovedForAll[owner][msg.sender]) {
            revert NotAuthorized(msg.sender, tokenId);
        }
        approvals[tokenId] = approved;
        emit Approval(owner, approved, tokenId);
    }

    function setApprovalForAll(address operator, bool approved) external {
        isApprovedForAll[msg.sender][operator] = approved;
        emit ApprovalForAll(msg.sender, operator, approved);
    }

    function transferFrom(address from, address to, uint256 tokenId) external {
        require(ownerOf(tokenId) == from, "Collectible: transfer from another than the owner");
        require(to != address(0), "Collectible: transfer to the zero address");
        if (msg.sender != from && approvals[tokenId] != msg.sender && !isApprovedForAll[from][msg.sender]) {
            revert NotAuthorized(msg.sender, tokenId);
        }
        delete approvals[tokenId];
        balances[from]--;
        balances[to]++;
        owners[tokenId] = to;
        emit Transfer(from, to, tokenId);
    }
}
