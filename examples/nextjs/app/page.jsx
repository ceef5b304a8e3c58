import { createClient } from '@mediabucket/client'
import { revalidatePath } from 'next/cache'
import Image from 'next/image'

export const dynamic = 'force-dynamic'

// The token stays on the server.
const openClient = () =>
  createClient({ url: process.env.MEDIABUCKET_URL, token: process.env.MEDIABUCKET_TOKEN })

async function upload(form) {
  'use server'
  await openClient().upload(form.get('file'))
  revalidatePath('/')
}

export default async function Page() {
  const { data } = await openClient().itemPage({ kind: 'image', order: 'newest', urls: 'signed' })
  return (
    <main>
      <form action={upload}>
        <input type="file" name="file" accept="image/*" aria-label="Picture" required />
        <button type="submit">Upload</button>
      </form>
      {data.map(({ id, url, width, height, alt_text, filename }) => (
        <Image
          key={id}
          src={url}
          width={width ?? 1600}
          height={height ?? 1200}
          sizes="(min-width: 60rem) 25vw, 100vw"
          alt={alt_text ?? filename ?? ''}
        />
      ))}
    </main>
  )
}
