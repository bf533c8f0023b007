// The service in Node: the same as serveGo, over HTTP/1.1 and over HTTP/2 without TLS. It prints its two ports.
import http from 'node:http'
import http2 from 'node:http2'
import crypto from 'node:crypto'
import zlib from 'node:zlib'

const unforwarded = new Set(process.argv[2].split(','))
const lines = []
for (let i = 0; i < 1 << 16; i++) lines.push(String(i).padStart(15, '0') + '\n')
const block = Buffer.from(lines.join(''))
const packed = zlib.gzipSync('a body that is compressed\n'.repeat(40))

function read(req, done) {
  const hash = crypto.createHash('sha256')
  let length = 0
  req.on('data', (piece) => { length += piece.length; hash.update(piece) })
  req.on('end', () => done(`${length} ${hash.digest('hex')}\n`))
}

function send(res, status, body, fields = {}) {
  res.writeHead(status, { 'Content-Type': 'text/plain', 'Content-Length': Buffer.byteLength(body), ...fields })
  res.end(body)
}

function echo(req, res) {
  read(req, (sum) => {
    const seen = {}, told = []
    for (let i = 0; i < req.rawHeaders.length; i += 2) {
      const name = req.rawHeaders[i].toLowerCase()
      if (name.startsWith(':') || unforwarded.has(name)) continue
      seen[name] = (seen[name] ?? -1) + 1
      told.push(`${name} ${seen[name]}: ${Buffer.from(req.rawHeaders[i + 1], 'latin1')}\n`)
    }
    send(res, 200, `${req.method} ${req.url}\n${told.sort().join('')}${sum}`)
  })
}

function serve(req, res) {
  const [word, rest] = req.url.split('?')[0].slice(1).split('/')
  switch (word) {
    case 'small': return send(res, 200, 'hello\n')
    case 'empty': return send(res, 200, '')
    case 'nothing': res.writeHead(204); return res.end()
    case 'tagged': {
      const fields = { ETag: '"v1"', 'Last-Modified': 'Mon, 02 Feb 2026 10:00:00 GMT', 'Cache-Control': 'max-age=60, must-revalidate', Vary: 'Accept-Encoding' }
      if (req.headers['if-none-match'] === '"v1"') { res.writeHead(304, fields); return res.end() }
      return send(res, 200, 'the first version\n', fields)
    }
    case 'range': {
      const asked = /^bytes=(\d+)-(\d+)$/.exec(req.headers.range ?? '')
      if (!asked) return send(res, 200, block.subarray(0, 4096), { 'Accept-Ranges': 'bytes' })
      const [from, to] = [Number(asked[1]), Number(asked[2])]
      if (from > 4095) return send(res, 416, '', { 'Content-Range': 'bytes */4096' })
      return send(res, 206, block.subarray(from, to + 1), { 'Content-Range': `bytes ${from}-${to}/4096`, ETag: '"v1"' })
    }
    case 'packed': return send(res, 200, packed, { 'Content-Encoding': 'gzip' })
    case 'chunked':
      res.writeHead(200, { 'Content-Type': 'text/plain' })
      for (let i = 0; i < 3; i++) res.write(`piece ${i}\n`)
      return res.end()
    case 'trailers':
      return read(req, () => {
        res.writeHead(200, { 'Content-Type': 'text/plain', Trailer: 'X-Sum, X-Got' })
        res.write('what the sum is of\n')
        res.addTrailers({ 'X-Sum': '42', 'X-Got': req.trailers['x-sum'] ?? '' })
        res.end()
      })
    case 'early':
      res.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' })
      return send(res, 200, 'late\n')
    case 'events':
      res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
      for (let i = 0; i < 3; i++) res.write(`id: ${i}\nevent: tick\ndata: {"n":${i}}\n\n`)
      return res.end()
    case 'cookies':
      return send(res, 200, 'cookies\n', {
        'Set-Cookie': ['a=1; Path=/; HttpOnly', 'b=2; Max-Age=5; SameSite=Lax'],
        'WWW-Authenticate': ['Basic realm="one, two"', 'Bearer scope="x"'], Link: ['</1>; rel=next', '</2>; rel=prev'],
      })
    case 'fields': {
      const fields = { 'X-Many': ['1', '2', '', '3, 4'], 'X-Odd': 'tab\tand "quotes"' }
      for (let i = 0; i < 80; i++) fields[`X-Field-${i}`] = 'abcdefghijklmnopqrstuvwxyz'[i % 26].repeat(i)
      return send(res, 200, 'fields\n', fields)
    }
    case 'status': {
      const fields = { 'Content-Type': 'application/problem+json' }
      if (rest === '401') fields['WWW-Authenticate'] = 'Bearer'
      if (rest === '405') fields.Allow = 'GET, HEAD'
      if (rest === '429' || rest === '503') fields['Retry-After'] = '7'
      return read(req, () => send(res, Number(rest), `{"status":${rest}}\n`, fields))
    }
    case 'moved': return send(res, Number(rest), 'elsewhere\n', { Location: `/small?from=${rest}#part` })
    case 'down': {
      const n = Number(rest)
      res.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': n << 20 })
      let sent = 0
      const more = () => {
        while (sent < n) {
          sent++
          if (!res.write(block)) return res.once('drain', more)
        }
        res.end()
      }
      return more()
    }
    case 'up': return read(req, (sum) => send(res, 200, sum))
    case 'unending': // its end is that of the connection
      if (req.httpVersionMajor === 1) res.shouldKeepAlive = false
      res.writeHead(200, { 'Content-Type': 'text/plain' })
      res.write('until the end\n')
      return res.end()
  }
  return echo(req, res)
}

http.createServer({ keepAliveTimeout: 5000 }, serve).listen(0, '127.0.0.1', function () {
  const first = this.address().port
  http2.createServer(serve).listen(0, '127.0.0.1', function () {
    console.log(`listening ${first} ${this.address().port}`)
  })
})
