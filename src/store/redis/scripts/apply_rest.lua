-- SPDX-License-Identifier: Apache-2.0
local function tell(key, is_gone)
  told, gone = key, is_gone and key or nil
end
-- #include common_line
-- #include common_view
-- #include common_settle
-- #include common_holders
local function next_token()
  last_token = math.max(last_token + 1, (now - TOKEN_EPOCH) * TOKENS_PER_MILLI)
  return last_token
end
local function is_many(all)
  for i = 1, #all, 2 do
    if all[i] == '#m' then return true end
  end
  return false
end
local many_parts
local forget_op
local function many()
  if not many_parts then
-- #include common_many
-- #include apply_many
    many_parts = {take = take_many, give = give_many, first = first_many, mode = mode_of}
  end
  return many_parts
end
-- #include apply_line
-- #include apply_take
-- #include apply_give
carry_out = function(key, a, all)
  local what = A[a] == 'a' and take or A[a] == 'n' and pass_on or give
  local ok, row = pcall(what, key, a, all)
  if A[a] == 'a' then gone = nil end -- whatever was left before, it may have been taken
  if ok then return row end
  local text = type(row) == 'table' and row.err or tostring(row)
  return find(text, 'OOM', 1, true) and {14} or {err = text}
end
