import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { signatureInvalid } from '../../src/access/signed-links.ts'
import { createAccessCheck } from '../../src/downloads/private-access.ts'
import { emptyLine } from '../../src/http/request-log.ts'

test('H2 an item is not looked up for a URL whose signature is not valid', async () => {
  const checkAccess = createAccessCheck({
    verifyLink: () => Promise.reject(signatureInvalid()),
    authorize: () => expect.unreachable(),
  })
  let lookUps = 0
  const find = async () => {
    lookUps += 1
    return null
  }
  const signed = { name: 'a', variant: null, isDownload: false, expires: 1, keyId: 'k', signature: 's' }
  const request = new IncomingMessage(new Socket())
  await expect(
    checkAccess(find, { id: 'r', request, line: emptyLine(), link: signed }),
  ).rejects.toMatchObject({
    code: 'signature-invalid',
  })
  expect(lookUps).toBe(0)
  await expect(checkAccess(find, { id: 'r', request, line: emptyLine(), link: null })).rejects.toMatchObject({
    code: 'media-unknown',
  })
  expect(lookUps).toBe(1)
})
