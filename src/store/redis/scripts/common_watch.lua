-- SPDX-License-Identifier: Apache-2.0
-- Somebody watches: what a step did to the holds of a key is read off the hash, before and after, so
-- that it does not matter which of the many ways it went. Each piece of news is a netstring of
-- netstrings: kind (G granted, R released, L lost, U undone), key, hold id, owner, session, mode (1, 2, 3),
-- token, note, number (G: ms of the lease; L: the reason), for G 1 where nobody had the key before.
local news = {}
local function text(s) return #s .. ':' .. s end
local function int(n) return text(string.format('INT', n)) end

local function read_holds(all)
  local read = {order = {}, holds = {}, notes = {}}
  for i = 1, #all, 2 do
    local field, value = all[i], all[i + 1]
    local kind, id = string.sub(field, 1, 2), string.sub(field, 3)
    if string.byte(field) ~= 35 then
      read.owner = field
    elseif kind == '#h' then
      read.order[#read.order + 1] = id
      read.holds[id] = value
    elseif kind == '#n' then
      read.notes[id] = value
    elseif kind == '#t' then
      read.token = value
    elseif kind == '#m' then
      read.mode = string.byte(value) == 115 and 2 or 3
    end
  end
  return read
end

-- What a hold's record says: its owner, session, token and deadline.
local function parse_hold(read, id)
  local value, owner, number = read.holds[id], read.owner, nil
  local granted, lease, rest = string.match(value, '^m?%d+\31(%d+)\31(%d+)\31%d+\31%d+\31(.*)$')
  if not granted then return nil end
  if string.byte(value) == 109 then
    number, rest, owner = string.match(rest, '^%d+\31(%d+)\31([^\31]*\31[^\31]*)\31(.+)$')
  end
  local session = string.match(rest or '', '\31(.*)$')
  if not session then return nil end
  return {owner = owner or '', session = session, deadline = granted + lease,
    token = read.mode == 3 and number or read.token or '0'}
end

local function put(kind, key, read, id, h, number, fresh)
  news[#news + 1] = text(text(kind) .. text(key) .. text(id) .. text(h.owner) .. text(h.session)
    .. int(read.mode or 1) .. text(h.token) .. text(read.notes[id] or '') .. int(number) .. int(fresh and 1 or 0))
end

-- What happened to a key whose hash was `before`. `kind` and `id`: what was asked for (as in apply.lua; f: to
-- end it at once), of which hold. `untold`: a hold whose grant is not told.
local function note(key, before, kind, id, untold)
  local after = redis.pcall('HGETALL', key)
  if after.err or before.err then return end
  local was, is = read_holds(before), read_holds(after)
  local had = false
  for _, hold in ipairs(was.order) do
    if is.holds[hold] then
      had = true
    else
      local h = parse_hold(was, hold)
      if h and h.deadline <= now then
        put('L', key, was, hold, h, LOST_BY_EXPIRY)
      elseif h and kind == 'f' then
        put('L', key, was, hold, h, LOST_BY_FORCE)
      elseif h and kind == 'l' then
        put('L', key, was, hold, h, LOST_BY_SESSION)
      elseif h and kind == 'o' and hold == id then
        put('R', key, was, hold, h, 0)
      elseif h and kind == 'u' then
        put('U', key, was, hold, h, 0)
      elseif h then
        put('L', key, was, hold, h, LOST_BY_STORE)
      end
    end
  end
  for _, hold in ipairs(is.order) do
    local h = not was.holds[hold] and hold ~= untold and parse_hold(is, hold)
    if h then put('G', key, is, hold, h, h.deadline - now, not had) end
  end
end

local function send_news()
  if #news == 0 then return end
  redis.call('PUBLISH', KEYS[1] == '#holdfast:state' and '#watch' or string.sub(KEYS[1], 1, -6) .. 'watch',
    table.concat(news))
end
