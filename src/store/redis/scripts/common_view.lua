-- SPDX-License-Identifier: Apache-2.0
-- What is in a lock's hash without the holds that are over, or nil where it is no lock. Fields:
-- owner -> count, and ours: #t token, #w somebody waits, #k kept until, #h<id> a hold, #o<id> its last
-- op ids, #n<id> its note, #d release delay, #r the daemon that the key is kept for. Its times are counted from its grant, to keep the record below the 64 bytes
-- up to which Redis stores a hash compactly and in order.
local function view(key, all, now)
  local holds, notes, ops, dead = {}, {}, {}, {}
  local v = {holds = holds, notes = notes, dead = dead, total = 0, foreign = 0, latest = 0, kept = 0}
  local live, over, last_live, last_over = 0, 0, 0, 0
  v.delay = 0
  for i = 1, #all, 2 do
    local field, value = all[i], all[i + 1]
    local kind = string.sub(field, 1, 2)
    if string.byte(field) ~= 35 then
      local count = tonumber(value)
      if v.owner or not count or count % 1 ~= 0 then return nil end
      v.owner, v.total = field, count
    elseif kind == '#h' then
      local id = string.sub(field, 3)
      local count, granted, lease, max_hold, min_hold, who = string.match(value,
        '^(%d+)\31(%d+)\31(%d+)\31(%d+)\31(%d+)\31(.*)$')
      if not who then return nil end
      count, granted, max_hold = tonumber(count), tonumber(granted), tonumber(max_hold)
      local deadline, min_end = granted + lease, granted + min_hold
      if deadline > now then
        live = live + count
        last_live = math.max(last_live, deadline)
        v.latest = math.max(v.latest, deadline, min_end)
        holds[#holds + 1] = {id = id, who = who, count = count, deadline = deadline, granted = granted,
          max_end = max_hold > 0 and granted + max_hold or 0, min_end = min_end}
      else
        over = over + count
        last_over = math.max(last_over, deadline)
        v.kept = math.max(v.kept, min_end)
        dead[#dead + 1] = field
        dead[#dead + 1] = '#n' .. id
        dead[#dead + 1] = '#o' .. id
      end
    elseif kind == '#t' then
      v.token = value
    elseif kind == '#w' then
      v.waits = true
    elseif kind == '#n' then
      notes[string.sub(field, 3)] = value
    elseif kind == '#o' then
      ops[string.sub(field, 3)] = value
    elseif kind == '#r' then
      v.reserved = value
    elseif kind == '#d' then
      v.delay = tonumber(value) or 0
    elseif kind == '#k' then
      v.kept = math.max(v.kept, tonumber(value) or 0)
    end
  end
  for _, h in ipairs(holds) do h.ops = ops[h.id] or '' end
  if v.delay > 0 then
    if live > 0 then v.latest = math.max(v.latest, last_live + v.delay) end
    if over > 0 then v.kept = math.max(v.kept, last_over + v.delay) end
  end
  if not v.owner then -- its owner was removed from outside, and its holds with it
    v.holds, v.total = {}, 0
    return v
  end
  -- Where no hold of ours was ever there, the field alone is the lock, whatever its count.
  v.foreign = math.max(over + live == 0 and 1 or 0, v.total - over - live)
  v.total = live + v.foreign
  if v.foreign > 0 then
    local ttl = redis.call('PTTL', key)
    v.foreign_until = ttl < 0 and math.huge or now + ttl
    v.latest = math.max(v.latest, v.foreign_until)
  end
  v.latest = math.max(v.latest, v.kept)
  return v
end

local function find_hold(v, owner, who, id)
  if v.owner ~= owner then return nil end
  for i, h in ipairs(v.holds) do
    if h.who == who and (not id or h.id == id) then return h, i end
  end
end

local function remembers(h, op)
  return op ~= '' and string.find('\31' .. h.ops, '\31' .. op .. '\31', 1, true) ~= nil
end

local function record(h)
  return string.format('INT\31INT\31INT\31INT\31INT\31%s', h.count, h.granted,
    h.deadline - h.granted, h.max_end > 0 and h.max_end - h.granted or 0, h.min_end - h.granted, h.who)
end
