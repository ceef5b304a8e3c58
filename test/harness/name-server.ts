import { createSocket } from 'node:dgram'
import { onTestFinished } from 'vitest'
import { createNameResolver, type ResolveName } from '../../packages/server/src/http/address-guard.ts'

/** Hosts of URLs that lead to no public address, in every notation. */
export const privateHosts = [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f000001',
  '0177.0.0.1',
  '127.0.0.1.',
  '127.255.255.254',
  '０x7f.1',
  'localhost',
  'LOCALHOST.',
  'a.localhost',
  '0.0.0.0',
  '0',
  '[::]',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
  '[2001:0:0:0:0:0:7f00:1]',
  '10.0.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  '169.254.169.254',
  '2852039166',
  '0xA9FEA9FE',
  '0251.0376.0251.0376',
  '[::ffff:a9fe:a9fe]',
  '[fd00:ec2::254]',
  '100.100.100.200',
  '192.0.0.192',
  '168.63.129.16',
  '224.0.0.1',
  '255.255.255.255',
  '198.18.0.1',
  '203.0.113.1',
  '240.0.0.1',
  '[fe80::1]',
  '[fec0::1]',
  '[fc00::1]',
  '[ff02::1]',
  '[2001:db8::1]',
  '[4000::1]',
]

/** A name server that gives these addresses to the queries of type A, one after the other; the last one stays. */
export async function startNameServer(
  addresses: readonly string[],
  at = { port: 0, address: '127.0.0.1' },
): Promise<{ resolveName: ResolveName; queries: () => number }> {
  const socket = createSocket('udp4')
  let queries = 0
  socket.on('message', (query, { port, address }) => {
    const questionEnd = query.indexOf(0, 12) + 5
    const isQuestionA = query.readUInt16BE(questionEnd - 4) === 1
    const header = Buffer.from(query.subarray(0, 12))
    header.writeUInt16BE(0x8180, 2)
    header.writeUInt16BE(isQuestionA ? 1 : 0, 6)
    header.writeUInt32BE(0, 8)
    const answers: Buffer[] = []
    if (isQuestionA) {
      const given = addresses[Math.min(queries, addresses.length - 1)] ?? ''
      queries += 1
      answers.push(Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...given.split('.').map(Number)]))
    }
    socket.send(Buffer.concat([header, query.subarray(12, questionEnd), ...answers]), port, address)
  })
  await new Promise<void>((done) => socket.bind(at, done))
  onTestFinished(() => void socket.close())
  const { port } = socket.address()
  return { resolveName: createNameResolver([`127.0.0.1:${port}`]), queries: () => queries }
}
