-- SPDX-License-Identifier: Apache-2.0
-- Acquires and releases, one after the other, in one step of the server.
-- KEYS: state, then the lock of each.
-- ARGV: incarnation, one MessagePack array of strings (an argument each would cost Redis about as
-- much as the work), and this life of the daemon. In the array, for each its kind and what follows:
--   a (acquire): owner, hold id, who (epoch, byte 31, session), lease ms, max hold ms (0: none),
--     min hold ms, op id, note, flags (letters of: r refuse re-entry, o only re-entry, p replay only,
--     w will wait, e enter the line, t others wait, q not told to who watches, L leave the line, Z go to its end; F and the number
--     of its FIFO place; S shared; M and the limit, a permit; D and a release delay in ms)
--   o, l, u (release one count, the whole hold, an acquire as if it had never been): owner, hold id,
--     who, op id
--   n (look after the line): number of the place, how (e leave, a all of the daemon's, x it
--     waits no more for all to have left, u it did not claim the key), daemon, nothing
-- Answers 1 (19 where somebody watches), now, then for each a number or a row that begins with a code; or 8, now, grace ms.
--
-- Making a function costs more than most of what is done here, so the common cases stand in line, and
-- the rest is made when the first one needs it.
local call, try, format, find = redis.call, redis.pcall, string.format, string.find
local state = KEYS[1]
local st = call('HMGET', state, 'inc', 'grace', 'token', 'watch')
local time = call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
if st[1] ~= ARGV[1] then
-- #include common_newinc
end
local in_grace = st[2] ~= '0' and tonumber(st[2] or 0) > now
local last_token = tonumber(st[3] or 0)
local token_before = last_token
local A, answers, at, keys = cmsgpack.unpack(ARGV[2]), {1, now}, 1, #KEYS
local carry_out, hand_on
-- What follows is the key without the prefix.
local channel, line_name = '#free:default:', '#line:default:'
if state == '#holdfast:state' then
  state = '#state'
else
  local prefix = string.sub(state, 1, -7) -- without '#state'
  channel, line_name = prefix .. '#free:', prefix .. '#line:'
end
local watched, send
if st[4] and tonumber(st[4]) > now then
-- #include common_watch
  watched, send, answers[1] = note, send_news, 19
end
-- Whose waiters are to be told that it was released. A waiter's attempt that follows the release takes
-- the key before anybody else could: then it is owed, until the attempt fails.
-- `gone`: it is known to have nothing left.
local told, owed, gone
local nothing = {}
local function rest()
-- #include apply_rest
end
for i = 2, keys do
  local key, kind, answer = KEYS[i], A[at], nil
  local all = owed == key and gone == key and nothing or try('HGETALL', key)
  local n = #all
  if all.err then
    if not find(all.err, 'WRONGTYPE', 1, true) then return all end
    answer = {10}
  elseif kind == 'a' then
    local flags = A[at + 9]
    local waits = flags == 'wt' or flags == 'wet' or owed == key
    if n == 0 and not in_grace and (flags == '' or flags == 'we' or flags == 'w' or flags == 'wt'
      or flags == 'wet') then
      local token = (now - TOKEN_EPOCH) * TOKENS_PER_MILLI
      if token <= last_token then token = last_token + 1 end
      local lease, max_hold, min_hold, id = A[at + 4], A[at + 5], A[at + 6], A[at + 2]
      local deadline = now + lease
      if max_hold ~= '0' and deadline > now + max_hold then
        deadline, lease = now + max_hold, max_hold
      end
      local text, hold, ops = format('INT', token), '1\31' .. format('INT', now) .. '\31' .. lease .. '\31'
        .. max_hold .. '\31' .. min_hold .. '\31' .. A[at + 3], A[at + 7] .. '\31'
      local done
      if waits then
        done = try('HSET', key, A[at + 1], '1', '#t', text, '#h' .. id, hold, '#o' .. id, ops, '#w', '1')
      else
        done = try('HSET', key, A[at + 1], '1', '#t', text, '#h' .. id, hold, '#o' .. id, ops)
      end
      if type(done) == 'table' then
        if not find(done.err, 'OOM', 1, true) then return done end
        answer = {14}
      else
        if A[at + 8] ~= '' then call('HSET', key, '#n' .. id, A[at + 8]) end
        if min_hold ~= '0' and now + min_hold > deadline then deadline = now + min_hold end
        call('PEXPIREAT', key, format('INT', deadline))
        last_token = token
        answer, owed = token, nil
        if waits then
          local first = call('ZRANGE', line_name .. string.sub(key, #state - 5), 0, 0)[1]
          if first and string.sub(first, 1, #ARGV[3] + 1) ~= ARGV[3] .. '\31' then answer = {18, token} end
        end
      end
    end
  elseif kind == 'n' then
    answer = nil
  elseif n == 0 then
    answer = 6
  elseif (n == 8 or n == 10 and all[9] == '#w') and all[2] == '1' and all[1] == A[at + 1]
    and all[5] == '#h' .. A[at + 2] and kind ~= 'u' then
    -- One hold of count 1, and nothing beside it but the mark. The key's own expiry has kept the time.
    local min_hold, holder = string.match(all[6], '^1\31%d+\31%d+\31%d+\31(%d+)\31(.*)$')
    if min_hold == '0' and holder == A[at + 3]
      and (kind == 'l' or not find(all[8], A[at + 4], 1, true)) then
      call('DEL', key)
      if n == 10 then told, gone = key, key end
      answer = 5
    end
  end
  if not answer then
    if not carry_out then rest() end
    answer = carry_out(key, at, all)
    if type(answer) == 'table' and answer.err then return answer end
  end
  if watched then
    watched(key, all, kind, A[at + 2], kind == 'a' and find(A[at + 9], 'q', 1, true) and A[at + 2])
  end
  at = at + (kind == 'a' and 10 or 5)
  if owed == key and kind == 'a' then told, owed = key, nil end
  if told then
    if KEYS[i + 1] == told and A[at] == 'a' then
      owed = told
    else
      local name = string.sub(told, #state - 5)
      if call('EXISTS', line_name .. name) == 0 then
        call('PUBLISH', channel .. name, '')
      else
        if not hand_on then rest() end
        answer = hand_on(told, kind, answer)
      end
    end
    told = nil
  end
  answers[i + 1] = answer
end
if last_token ~= token_before then call('HSET', KEYS[1], 'token', format('INT', last_token)) end
if send then send() end
return answers
