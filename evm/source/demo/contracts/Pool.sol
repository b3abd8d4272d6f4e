// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

interface IToken {
    function transfer(address to, uint256 value) external returns (bool);
    function transferFrom(address from, address to, uint256 value) external returns (bool);
}

/// A constant-product market of two tokens with a fee of 0.3 %. The lock against
/// re-entry is transient storage (EIP-1153), the reserves share one slot.
contract Pool {
    IToken public immutable token0;
    IToken public immutable token1;
    uint112 private reserve0;
    uint112 private reserve1;
    uint32 private updatedAt;
    uint256 public totalShares;
    mapping(address => uint256) public shares;
    bool private transient locked;

    event LiquidityAdded(address indexed provider, uint256 amount0, uint256 amount1, uint256 shares);
    event Swap(
        address indexed sender,
        uint256 amount0In,
        uint256 amount1In,
        uint256 amount0Out,
        uint256 amount1Out,
        address indexed to
    );
    event Sync(uint112 reserve0, uint112 reserve1);

    error Slippage(uint256 out, uint256 wanted);
    error Locked();

    modifier once() {
        if (locked) revert Locked();
        locked = true;
        _;
        locked = false;
    }

    constructor(IToken token0_, IToken token1_) {
        token0 = token0_;
        token1 = token1_;
    }

    function getReserves() external view returns (uint112, uint112, uint32) {
        return (reserve0, reserve1, updatedAt);
    }

    /// What a swap would give now.
    function quote(bool zeroForOne, uint256 amountIn) public view returns (uint256) {
        (uint256 from, uint256 to) = zeroForOne ? (reserve0, reserve1) : (reserve1, reserve0);
        require(from > 0 && to > 0, "Pool: no liquidity");
        uint256 afterFee = amountIn * 997;
        return (afterFee * to) / (from * 1000 + afterFee);
    }

    function addLiquidity(uint256 amount0, uint256 amount1) external once returns (uint256 minted) {
        minted = totalShares == 0 ? amount0 : (amount0 * totalShares) / reserve0;
        require(minted > 0, "Pool: nothing added");
        totalShares += minted;
        shares[msg.sender] += minted;
        token0.transferFrom(msg.sender, address(this), amount0);
        token1.transferFrom(msg.sender, address(this), amount1);
        emit LiquidityAdded(msg.sender, amount0, amount1, minted);
        _sync(reserve0 + amount0, reserve1 + amount1);
    }

    function swap(bool zeroForOne, uint256 amountIn, uint256 minOut, address to) external once returns (uint256 out) {
        out = quote(zeroForOne, amountIn);
        if (out < minOut) revert Slippage(out, minOut);
        if (zeroForOne) {
            token0.transferFrom(msg.sender, address(this), amountIn);
            token1.transfer(to, out);
            _sync(reserve0 + amountIn, reserve1 - out);
            emit Swap(msg.sender, amountIn, 0, 0, out, to);
        } else {
            token1.transferFrom(msg.sender, address(this), amountIn);
            token0.transfer(to, out);
            _sync(reserve0 - out, reserve1 + amountIn);
            emit Swap(msg.sender, 0, amountIn, out, 0, to);
        }
    }

    function _sync(uint256 new0, uint256 new1) private {
        require(new0 <= type(uint112).max && new1 <= type(uint112).max, "Pool: reserve overflow");
        reserve0 = uint112(new0);
        reserve1 = uint112(new1);
        updatedAt = uint32(block.timestamp);
        emit Sync(uint112(new0), uint112(new1));
    }
}
