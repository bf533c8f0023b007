// A client in Node: fetch, and HTTP/2 by the module of that name. It reads jobs, a line of JSON each, and answers in kind.
import http2 from 'node:http2'
import crypto from 'node:crypto'
import fs from 'node:fs'
import readline from 'node:readline'

process.env.NODE_NO_WARNINGS = '1'
const lines = []
for (let i = 0; i < 1 << 16; i++) lines.push(String(i).padStart(15, '0') + '\n')
const block = Buffer.from(lines.join(''))

function bodyOf(job) {
  if (job.blocks > 0) return Buffer.concat(Array(job.blocks).fill(block))
  return job.body === '' ? undefined : Buffer.from(job.body)
}

class Told {
  constructor() { this.hash = crypto.createHash('sha256'); this.length = 0; this.start = [] }
  add(piece) { this.hash.update(piece); if (this.length < 8192) this.start.push(piece); this.length += piece.length }
  in(answer) {
    answer.length = this.length
    answer.hash = this.hash.digest('hex')
    answer.body = this.length < 8192 ? Buffer.concat(this.start).toString('latin1') : ''
    return answer
  }
}

async function byFetch(job) {
  const answer = await fetch(job.base + job.target, { method: job.method, headers: job.fields, body: bodyOf(job), redirect: 'manual' })
  const told = new Told()
  if (answer.body) for await (const piece of answer.body) told.add(piece)
  return told.in({ status: answer.status, fields: [...answer.headers], trailers: [], early: [] })
}

const sessions = new Map()

function sessionTo(job) {
  let session = sessions.get(job.base)
  if (session === undefined || session.destroyed || session.closed) {
    session = http2.connect(job.base, job.ca ? { ca: fs.readFileSync(job.ca) } : {})
    session.on('error', () => {})
    sessions.set(job.base, session)
  }
  return session
}

const pairs = (raw) => {
  const all = []
  for (let i = 0; i < raw.length; i += 2) all.push([raw[i], Buffer.from(raw[i + 1], 'latin1').toString()])
  return all
}

// raw takes the list of names and values that Node hands to a listener last.
const raw = (args) => pairs(args.find(Array.isArray) ?? [])

function byHTTP2(job) {
  return new Promise((resolve, reject) => {
    const fields = { ':method': job.method, ':path': job.target }
    for (const [name, value] of job.fields) {
      const known = Object.keys(fields).find((n) => n.toLowerCase() === name.toLowerCase()) ?? name
      fields[known] = known in fields ? [].concat(fields[known], value) : value
    }
    const body = bodyOf(job)
    if (body && !job.chunked) fields['content-length'] = body.length
    const waits = job.trailers?.length > 0
    if (waits) fields.trailer = job.trailers.map(([name]) => name).join(', ') // net/http drops those that were not announced
    const stream = sessionTo(job).request(fields, { endStream: body === undefined && !waits, waitForTrailers: waits })
    const answer = { early: [], trailers: [], fields: [] }
    const told = new Told()
    stream.on('wantTrailers', () => stream.sendTrailers(Object.fromEntries(job.trailers)))
    stream.on('headers', (headers, ...rest) => answer.early.push({ status: headers[':status'], fields: raw(rest) }))
    stream.on('response', (headers, ...rest) => { answer.status = headers[':status']; answer.fields = raw(rest) })
    stream.on('trailers', (trailers, ...rest) => { answer.trailers = raw(rest) })
    stream.on('data', (piece) => told.add(piece))
    stream.on('error', reject)
    stream.on('close', () => answer.status === undefined ? reject(new Error('no answer')) : resolve(told.in(answer)))
    if (body !== undefined) stream.end(body)
    else if (waits) stream.end()
  })
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const job = JSON.parse(line)
  let answer
  try {
    answer = await (job.via === 'fetch' ? byFetch(job) : byHTTP2(job))
  } catch (error) {
    answer = { error: String(error.cause ?? error) }
  }
  process.stdout.write(JSON.stringify(answer) + '\n')
}
process.exit(0)
