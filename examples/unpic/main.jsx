import { createClient } from '@mediabucket/client'
import { UploadZone, useItems, useUpload } from '@mediabucket/react'
import { Image } from '@unpic/react/base'
import { createRoot } from 'react-dom/client'
import { transformer } from './transformer.js'

const client = createClient({
  url: import.meta.env.VITE_MEDIABUCKET_URL,
  token: import.meta.env.VITE_MEDIABUCKET_TOKEN,
})

function Pictures() {
  const { add } = useUpload(client)
  const { items } = useItems(client, { kind: 'image', order: 'newest', urls: 'signed', live: true })
  return (
    <>
      <UploadZone label="Upload" accept="image/*" onFiles={add} />
      {items.map(({ id, url, width, height, alt_text, filename }) => (
        <Image
          key={id}
          src={url}
          transformer={transformer}
          layout="constrained"
          width={width}
          height={height}
          breakpoints={[400, 1600]}
          sizes="(min-width: 60rem) 25vw, 100vw"
          alt={alt_text ?? filename ?? ''}
        />
      ))}
    </>
  )
}

createRoot(document.querySelector('#app')).render(<Pictures />)
