// The addresses of the conversations that the page lists.

const links = (rules.links ?? []).flatMap((selector) => all(document, selector))
return JSON.stringify([...new Set(links.map((link) => link.href))])
