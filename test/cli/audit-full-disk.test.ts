import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { startServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'

test('Y8 with less free space than twice the reserve, downloads are counted and not recorded, and uploads continue', async () => {
  const { bavail, bsize } = await statfs(tmpdir())
  await using server = await startServer({
    MEDIABUCKET_AUDIT: 'all',
    MEDIABUCKET_MIN_FREE: `${Math.floor(bavail * bsize * 0.7)}`,
  })
  const { url } = await upload(server, 'x')
  for (let index = 0; index < 3; index += 1) expect(await (await fetch(url)).text()).toBe('x')
  await until('the downloads are counted', async () =>
    (await (await server.request('/metrics')).text()).includes('mediabucket_audit_downloads_lost_total 3'),
  )
  await upload(server, 'y')
  const { stdout } = await server.command('audit', '--json')
  const codes = stdout.match(/(?<="event_code":")[^"]+/g)
  expect(codes?.filter((code) => code === 'upload')).toHaveLength(2)
  expect(codes).not.toContain('download')
})
