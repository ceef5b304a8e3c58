import type { Media } from '@mediabucket/client'
import { IconButton } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery-context.ts'
import { CopyLinks } from '../selection/copy-links.tsx'
import { downloadLink } from '../service/file-access.ts'
import { isPrivate } from '../service/urls.ts'
import { strings } from '../strings.ts'

interface ViewerActionsProps {
  readonly media: Media
  readonly detailsOpen: boolean
  readonly onDetails: () => void
}

export function ViewerActions({ media, detailsOpen, onDetails }: ViewerActionsProps) {
  const { sharing, deletion, canDelete } = useGallery()
  const link = downloadLink(media, sharing.saveFile)
  return (
    <div class="viewer-actions">
      <IconButton icon="info" label={strings.viewer.details} pressed={detailsOpen} onClick={onDetails} />
      <CopyLinks
        label={strings.viewer.copy}
        ids={() => [media.id]}
        isPrivate={isPrivate(media)}
        menu="viewer-links"
      />
      <a
        class="icon-button"
        href={link.href}
        download={link.download}
        onClick={link.onClick}
        aria-label={strings.viewer.download}
        title={strings.viewer.download}
      >
        <Icon name="download" />
      </a>
      {canDelete && (
        <IconButton
          icon="trash"
          label={strings.viewer.delete}
          onClick={() => void deletion.request([media.id])}
        />
      )}
    </div>
  )
}
